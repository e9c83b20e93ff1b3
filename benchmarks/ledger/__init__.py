"""What results files decide on the pages; `benchmarks/reproduction.py` puts it in its places."""
