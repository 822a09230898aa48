package meta

import (
	"fmt"
	"regexp"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Transform is a partition or sort transform.
type Transform struct {
	Kind  planv1.TransformKind
	Param int32
}

var plainTransforms = map[string]planv1.TransformKind{
	"identity": planv1.TransformKind_TRANSFORM_KIND_IDENTITY,
	"year":     planv1.TransformKind_TRANSFORM_KIND_YEAR,
	"month":    planv1.TransformKind_TRANSFORM_KIND_MONTH,
	"day":      planv1.TransformKind_TRANSFORM_KIND_DAY,
	"hour":     planv1.TransformKind_TRANSFORM_KIND_HOUR,
	"void":     planv1.TransformKind_TRANSFORM_KIND_VOID,
}

var (
	paramTransform = regexp.MustCompile(`^(bucket|truncate)\[(\d+)\]$`)
	transformNames = func() map[planv1.TransformKind]string {
		m := map[planv1.TransformKind]string{planv1.TransformKind_TRANSFORM_KIND_BUCKET: "bucket", planv1.TransformKind_TRANSFORM_KIND_TRUNCATE: "truncate"}
		for n, k := range plainTransforms {
			m[k] = n
		}
		return m
	}()
)

// ParseTransform reads a transform as the metadata writes it. One that the sink does not know is not an error here; its Kind is UNSPECIFIED.
func ParseTransform(text string) Transform {
	if k, ok := plainTransforms[text]; ok {
		return Transform{Kind: k}
	}
	m := paramTransform.FindStringSubmatch(text)
	if m == nil {
		return Transform{}
	}
	n, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil || n < 1 {
		return Transform{}
	}
	if m[1] == "bucket" {
		return Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_BUCKET, Param: int32(n)}
	}
	return Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, Param: int32(n)}
}

func (t Transform) String() string {
	name, ok := transformNames[t.Kind]
	switch {
	case !ok:
		return "unknown"
	case t.hasParam():
		return fmt.Sprintf("%s[%d]", name, t.Param)
	}
	return name
}

func (t Transform) hasParam() bool {
	return t.Kind == planv1.TransformKind_TRANSFORM_KIND_BUCKET || t.Kind == planv1.TransformKind_TRANSFORM_KIND_TRUNCATE
}

// suffix is what the reference implementation appends to the column's name to name the partition field.
func (t Transform) suffix() string {
	switch t.Kind {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		return ""
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return "_trunc"
	case planv1.TransformKind_TRANSFORM_KIND_VOID:
		return "_null"
	}
	return "_" + transformNames[t.Kind]
}

// group is equal for transforms of one column that cannot stand beside each other in a spec.
func (t Transform) group() string {
	switch t.Kind {
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY, planv1.TransformKind_TRANSFORM_KIND_HOUR:
		return "time"
	}
	return t.String()
}

// Result is the type of the transform's values, or an error that says why a column of that type cannot have it.
func (t Transform) Result(source *planv1.Type) (*planv1.Type, error) {
	refuse := func(takes string) (*planv1.Type, error) {
		return nil, fmt.Errorf("%s cannot be applied to type %s: it takes %s", t, TypeName(source), takes)
	}
	if _, ok := transformNames[t.Kind]; !ok {
		return nil, fmt.Errorf("a partition transform that Signet does not know is %w", ErrUnsupported)
	}
	if t.hasParam() && t.Param < 1 {
		return nil, fmt.Errorf("%s: the number must be positive", t)
	}
	if IsNested(source) {
		return refuse("columns of primitive types")
	}
	integer := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}
	switch t.Kind {
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		switch source.GetKind() {
		case planv1.TypeKind_TYPE_KIND_BOOLEAN, planv1.TypeKind_TYPE_KIND_FLOAT32, planv1.TypeKind_TYPE_KIND_FLOAT64:
			return refuse("int, long, decimal, date, time, timestamp, timestamptz, string, uuid, fixed or binary")
		}
		return integer, nil
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		switch source.GetKind() {
		case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64, planv1.TypeKind_TYPE_KIND_DECIMAL, planv1.TypeKind_TYPE_KIND_STRING, planv1.TypeKind_TYPE_KIND_BINARY:
			return source, nil
		}
		return refuse("int, long, decimal, string or binary")
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH:
		if !isDate(source) && !isTimestamp(source) {
			return refuse("date, timestamp or timestamptz")
		}
		return integer, nil
	case planv1.TransformKind_TRANSFORM_KIND_DAY:
		if !isDate(source) && !isTimestamp(source) {
			return refuse("date, timestamp or timestamptz")
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DATE}, nil
	case planv1.TransformKind_TRANSFORM_KIND_HOUR:
		if !isTimestamp(source) {
			return refuse("timestamp or timestamptz")
		}
		return integer, nil
	}
	return source, nil // identity, void
}

func isDate(t *planv1.Type) bool { return t.GetKind() == planv1.TypeKind_TYPE_KIND_DATE }

func isTimestamp(t *planv1.Type) bool {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return true
	}
	return false
}
