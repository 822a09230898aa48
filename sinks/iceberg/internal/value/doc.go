// Package value holds what Iceberg says about single values: their binary form in bounds and partition summaries, their order, and how
// bounds are shortened.
//
// Invariants:
//   - A value of another type than its column's, or out of the type's range, is an error, never a conversion.
//   - A shortened lower bound is at most the value and a shortened upper bound at least the value; where no such upper bound exists there is none.
//   - NaN is never a bound. A zero is -0.0 as a lower bound and +0.0 as an upper one, so that it bounds both zeros.
package value
