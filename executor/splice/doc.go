// Package splice makes data files out of the row groups of other Parquet files without decoding a value: the bytes of the column chunks are copied, and a
// new footer describes them by the table's names and field ids.
//
// Invariants:
//
//   - A row group is copied only where its file's metadata prove that the result is what a writer of the table would have written: the same rows, in types,
//     encodings, compression and sizes that the table's rules allow. What is not proved is refused with a reason, and its rows are written the other way.
//   - Statistics are copied where the writer is known to write right ones, and left out otherwise: then the new footer has none either.
//   - Pages are copied byte for byte, checksums included. Page indexes and bloom filters, which are optional and point into the old file, are left out.
//   - Values are not looked at. A file that is damaged inside a page stays damaged; damage in the structure (offsets, headers of pages, counts) is refused.
//   - Nothing here holds more than the footers of the files at work.
//
// A new file is a list of Pieces before it is bytes, so that stores that can copy on their own side (S3's UploadPartCopy) need not move any: see Maker.
package splice
