"""The paper's tables and figures, one script each."""
