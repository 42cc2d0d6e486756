"""`python -m tests.mutants [NAME...]`: breaks rules one by one, and names the test that fails for each."""

from __future__ import annotations

import argparse
import sys

from tests.mutants.runner import Unusable, failing, known_mutants


def main() -> int:
    """Ends with 0, with 1 where a mutant survives or cannot be tried, and with 2 for a wrong call."""
    known = {mutant.name: mutant for mutant in known_mutants()}
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these mutants (default: all)")
    names = parser.parse_args().names or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no mutant {unknown[0]}; there are {', '.join(known)}")
    width = max(map(len, names))
    tests = list(dict.fromkeys(file for name in names for file in known[name].tests))
    try:
        if already := failing(tests):
            raise Unusable(f"without a mutant too, {already[0]} fails")
    except Unusable as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    killed = 0
    for name in names:
        try:
            failed = failing(known[name].tests, known[name])
            killed += bool(failed)
            said = f"killed    {' '.join(failed)}" if failed else "SURVIVED"
        except Unusable as error:
            said = f"ERROR     {error}"
        print(f"{name:{width}}  {said}", flush=True)
    print(f"{killed} of {len(names)} killed")
    return 0 if killed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
