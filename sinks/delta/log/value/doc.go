// Package value holds single values of the types that a Delta table's columns have, as they occur in partition values and in statistics: typed, comparable, and
// with the texts that Spark, which all others follow, writes for them.
package value
