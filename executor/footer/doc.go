// Package footer reads and writes the footers of Parquet files, and the headers of their pages.
//
// It exists because rows are copied between files without being decoded: the bodies stay as they are, and what describes them is written anew, with
// other names, field ids and offsets.
//
// Invariants:
//
//   - Damaged and hostile input gives an error: no panic, and no memory beyond a small multiple of the footer's own size.
//   - What is read and understood is written back with the same meaning. What is not understood (members of later versions of the format, page
//     indexes, key-value metadata of columns) is dropped, all of which the format says is optional.
//
// Sources: https://github.com/apache/parquet-format (parquet.thrift, version 2.11) and the compact protocol of Apache Thrift.
package footer
