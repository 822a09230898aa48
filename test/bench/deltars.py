"""deltars.py OUT FILE...: writes the rows of Parquet files into a Delta table with delta-rs, and prints the seconds that takes."""

import sys
import time

import pyarrow.dataset
from deltalake import write_deltalake

out, files = sys.argv[1], sys.argv[2:]
reader = pyarrow.dataset.dataset(files, format="parquet").scanner(batch_size=1 << 17).to_reader()
start = time.perf_counter()
write_deltalake(out, reader)
print(time.perf_counter() - start)
