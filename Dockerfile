# The desk in a container: `docker build -t paperdesk .`; docs/every-day.md says how it is run.
FROM python:3.13-slim-trixie AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/paperdesk \
    && /opt/paperdesk/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY connectors connectors
COPY engine engine
COPY memory memory
COPY paperdesk paperdesk
COPY tui tui
RUN /opt/paperdesk/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation .

FROM python:3.13-slim-trixie
RUN useradd --no-create-home --uid 10001 paperdesk && install --directory --owner=paperdesk --mode=700 /data
COPY --from=build /opt/paperdesk /opt/paperdesk
ENV PATH="/opt/paperdesk/bin:$PATH" PAPERDESK_HOME=/data
USER 10001
WORKDIR /data
VOLUME /data
ENTRYPOINT ["paperdesk"]
CMD ["--daily"]
