"""Regulatory filings from SEC EDGAR: their list, their acceptance times, and the text of their main sections."""

from __future__ import annotations

from connectors.filings.edgar import EdgarFilings

__all__ = ["EdgarFilings"]
