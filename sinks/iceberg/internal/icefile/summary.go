package icefile

import (
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// FieldSummary is what a manifest list says about one partition field of a manifest's files. A nil bound is none; one of no bytes is a bound.
type FieldSummary struct {
	ContainsNull bool   `json:"null,omitempty"`
	ContainsNaN  *bool  `json:"nan,omitempty"` // nil: unknown
	Lower        []byte `json:"lower"`
	Upper        []byte `json:"upper"`
}

// summarizer collects the summary of one partition field.
type summarizer struct {
	typ        *planv1.Type
	null, nan  bool
	lower, upp *planv1.Value
}

func newSummarizers(partition []*planv1.PartitionField) []summarizer {
	out := make([]summarizer, len(partition))
	for i, p := range partition {
		out[i].typ = p.GetResultType()
	}
	return out
}

func (s *summarizer) add(v *planv1.Value) {
	switch {
	case value.IsNull(v):
		s.null = true
	case value.IsNaN(v):
		s.nan = true
	default:
		if s.lower == nil || value.Compare(v, s.lower) < 0 {
			s.lower = proto.CloneOf(v) // the caller's may be reused
		}
		if s.upp == nil || value.Compare(v, s.upp) > 0 {
			s.upp = proto.CloneOf(v)
		}
	}
}

func (s *summarizer) summary() FieldSummary {
	nan := s.nan
	out := FieldSummary{ContainsNull: s.null, ContainsNaN: &nan}
	if s.lower != nil {
		out.Lower, _ = value.Lower(s.typ, s.lower, 0)
		out.Upper, _ = value.Upper(s.typ, s.upp, 0)
		if out.Lower == nil {
			out.Lower = []byte{}
		}
		if out.Upper == nil {
			out.Upper = []byte{}
		}
	}
	return out
}

// Summaries collects what a manifest list says about the partitions of a manifest's files.
type Summaries struct{ fields []summarizer }

// NewSummaries begins for the fields of a spec, whose values come in this order.
func NewSummaries(partition []*planv1.PartitionField) *Summaries {
	return &Summaries{newSummarizers(partition)}
}

// Add takes the partition of one file.
func (s *Summaries) Add(values []*planv1.Value) {
	for i, v := range values {
		s.fields[i].add(v)
	}
}

// Fields is what is to be said; never nil.
func (s *Summaries) Fields() []FieldSummary {
	out := make([]FieldSummary, 0, len(s.fields))
	for i := range s.fields {
		out = append(out, s.fields[i].summary())
	}
	return out
}

// MergeSummaries makes one list of summaries of several; nil where some say nothing, or where they are not about these fields.
func MergeSummaries(fields []*planv1.PartitionField, all [][]FieldSummary) []FieldSummary {
	sums := newSummarizers(fields)
	unknown := make([]bool, len(fields)) // whether there are NaNs
	for _, list := range all {
		if list == nil || len(list) != len(fields) {
			return nil
		}
		for i, s := range list {
			sums[i].null = sums[i].null || s.ContainsNull
			sums[i].nan = sums[i].nan || s.ContainsNaN != nil && *s.ContainsNaN
			unknown[i] = unknown[i] || s.ContainsNaN == nil
			for _, b := range [][]byte{s.Lower, s.Upper} {
				if b == nil {
					continue
				}
				v, ok := value.Parse(sums[i].typ, b)
				if !ok {
					return nil
				}
				sums[i].add(v)
			}
		}
	}
	out := make([]FieldSummary, 0, len(sums))
	for i := range sums {
		s := sums[i].summary()
		if unknown[i] && !sums[i].nan {
			s.ContainsNaN = nil
		}
		out = append(out, s)
	}
	return out
}
