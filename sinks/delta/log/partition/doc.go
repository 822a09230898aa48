// Package partition writes and reads what a Delta log says of partitions: the values of partition columns as texts ("Partition Value Serialization" in PROTOCOL.md of
// delta-io/delta), the directories that Hive and Spark name after them, and the URI encoding of paths in the log.
//
// The three are different escapes, one around the other. A value x:y is the text x:y in partitionValues, the directory p=x%3Ay, and p=x%253Ay in the path of an add.
// Each is done and undone exactly once: paths are compared decoded.
package partition
