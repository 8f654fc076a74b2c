"""From a report to what people and machines read: text, JSON, SARIF, lenses, diagnostics, hovers. Pure."""
