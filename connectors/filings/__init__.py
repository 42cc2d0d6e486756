"""Regulatory filings from SEC EDGAR: their list, their acceptance times, and the text of their main sections."""
