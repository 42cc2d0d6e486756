"""The demo market: fictional companies with bars, news and filings, determined by a seed on any machine."""
