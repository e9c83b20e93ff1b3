"""The laboratory: the paper's protocol, a preset for every row, and figures, tables and reports of the results."""
