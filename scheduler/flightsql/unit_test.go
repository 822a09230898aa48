package flightsql

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestSealer_HandlesAreForOnePrincipalOneKindAndATime(t *testing.T) {
	s, other := newSealer(), newSealer()
	now := time.Now()
	s.now = func() time.Time { return now }
	h := s.make(kindTicket, "ann", "job-1", now.Add(time.Minute))
	job, ok := s.open(kindTicket, "ann", h)
	require.True(t, ok)
	require.Equal(t, "job-1", job)
	require.NotEqual(t, h, s.make(kindTicket, "ann", "job-1", now.Add(time.Minute)))
	for _, try := range []struct {
		s         *sealer
		kind, who string
		handle    []byte
	}{
		{s, kindPoll, "ann", h},
		{s, kindTicket, "bob", h},
		{other, kindTicket, "ann", h},
		{s, kindTicket, "ann", h[:len(h)-1]},
		{s, kindTicket, "ann", nil},
		{s, kindTicket, "ann", []byte("job-1")},
		{s, kindTicket, "ann", append([]byte{h[0] ^ 1}, h[1:]...)},
	} {
		_, ok := try.s.open(try.kind, try.who, try.handle)
		require.False(t, ok)
	}
	now = now.Add(time.Minute + time.Millisecond)
	_, ok = s.open(kindTicket, "ann", h)
	require.False(t, ok, "expired")
}

func ann() *prepared { return &prepared{principal: "ann", template: &template{text: "SELECT 1"}} }

func TestPreparedStore_MemoryIsBounded(t *testing.T) {
	st := newPreparedStore()
	h, err := st.add(ann())
	require.NoError(t, err)
	require.NoError(t, st.resize(h, maxPreparedBytes-8))
	_, err = st.add(ann())
	require.NoError(t, err)
	_, err = st.add(ann())
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, codes.ResourceExhausted, status.Code(st.resize(h, maxPreparedBytes)))
	require.NoError(t, st.resize(h, 10))
	require.True(t, st.remove("ann", h))
	require.Equal(t, codes.NotFound, status.Code(st.resize(h, 1)))
	require.Equal(t, len("SELECT 1"), st.bytes)
}

func TestPreparedStore_IdleOnesGoAndNobodyHoldsTooMany(t *testing.T) {
	st := newPreparedStore()
	now := time.Now()
	st.now = func() time.Time { return now }
	h, err := st.add(ann())
	require.NoError(t, err)
	require.NotNil(t, st.get("ann", h))
	require.Nil(t, st.get("bob", h))
	require.False(t, st.remove("bob", h))
	now = now.Add(preparedIdle)
	require.NotNil(t, st.get("ann", h), "used again, it stays")
	now = now.Add(preparedIdle)
	require.NotNil(t, st.get("ann", h))
	now = now.Add(preparedIdle + 1)
	require.Nil(t, st.get("ann", h))
	for range maxPrepared {
		_, err := st.add(ann())
		require.NoError(t, err)
	}
	_, err = st.add(ann())
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	h, err = st.add(&prepared{principal: "bob", template: &template{}})
	require.NoError(t, err)
	require.True(t, st.remove("bob", h))
	require.False(t, st.remove("bob", h))
	now = now.Add(preparedIdle + 1)
	_, err = st.add(ann())
	require.NoError(t, err)
	require.Len(t, st.all, 1)
	require.Equal(t, len("SELECT 1"), st.bytes)
}

// canceller notes which jobs are cancelled.
type canceller struct {
	Backend
	mu   sync.Mutex
	jobs []string
}

func (c *canceller) Cancel(_, id string) (bool, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = append(c.jobs, id)
	return true, "", nil
}

func (c *canceller) cancelled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.jobs)
}

func newTestCalls() (*calls, *canceller) {
	b := &canceller{}
	return newCalls(&server{backend: b, Config: Config{Logger: slog.New(slog.DiscardHandler)}}), b
}

func TestCalls_TheLastOneThatLeavesCancels(t *testing.T) {
	c, b := newTestCalls()
	c.join("ann", "j", false)
	c.join("ann", "j", true)
	c.leave("j", false)
	require.Empty(t, b.cancelled())
	c.leave("j", false)
	require.Equal(t, []string{"j"}, b.cancelled())

	c.join("ann", "ended", false)
	c.leave("ended", true)
	c.join("ann", "of another client", true)
	c.leave("of another client", false)
	require.Len(t, b.cancelled(), 1)

	c.join("ann", "open", false)
	c.close()
	c.leave("open", false)
	require.Len(t, b.cancelled(), 1, "a server that stops cancels nothing")
	require.Empty(t, c.jobs)
}

func TestCalls_AClientThatStopsPollingLosesItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := newTestCalls()
		c.polled("ann", "j", false, false)
		for range 3 {
			time.Sleep(pollLease - time.Second)
			c.polled("ann", "j", true, false)
		}
		require.Empty(t, b.cancelled())
		time.Sleep(pollLease + time.Second)
		synctest.Wait()
		require.Equal(t, []string{"j"}, b.cancelled())
		c.polled("ann", "k", false, false)
		c.polled("ann", "k", true, true)
		time.Sleep(2 * pollLease)
		synctest.Wait()
		require.Len(t, b.cancelled(), 1, "it had ended")
		require.Empty(t, c.jobs)
	})
}

// X19: the pattern is SQL's LIKE.
func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"%", "", true},
		{"%", "abc", true},
		{"a%", "abc", true},
		{"%c", "abc", true},
		{"a%c", "abc", true},
		{"a%d", "abc", false},
		{"_", "ü", true},
		{"_", "", false},
		{"__", "a", false},
		{"a_c", "abc", true},
		{`a\_c`, "abc", false},
		{`a\_c`, "a_c", true},
		{`\%`, "%", true},
		{`\%`, "x", false},
		{`\\`, `\`, true},
		{`a\`, `a\`, true},
		{"A", "a", false},
		{"%%%a%%%", "xxay", true},
		{"%ab%ab", "abxab", true},
		{"%a_", "aab", true},
	} {
		require.Equal(t, c.want, matches(&c.pattern, c.name), "%s ~ %s", c.name, c.pattern)
	}
	require.True(t, matches(nil, "anything"))
	long := strings.Repeat("a", 10_000)
	hostile := strings.Repeat("a%", 200) + "b"
	require.False(t, matches(&hostile, long))
}

func FuzzLike(f *testing.F) {
	f.Add("a%_b", "axyb")
	f.Add(`\%`, "%")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern)+len(name) > 200 || strings.ToValidUTF8(pattern+name, "") != pattern+name {
			return
		}
		var re strings.Builder
		re.WriteString(`(?s)\A`)
		for p := []rune(pattern); len(p) > 0; p = p[1:] {
			switch {
			case p[0] == '%':
				re.WriteString(".*")
			case p[0] == '_':
				re.WriteString(".")
			case p[0] == '\\' && len(p) > 1:
				p = p[1:]
				fallthrough
			default:
				re.WriteString(regexp.QuoteMeta(string(p[0])))
			}
		}
		re.WriteString(`\z`)
		require.Equal(t, regexp.MustCompile(re.String()).MatchString(name), matches(&pattern, name))
	})
}

func TestSchemaParts(t *testing.T) {
	for text, want := range map[string][]string{
		"a": {"a"}, "a.b": {"a", "b"}, `"a.b"`: {"a.b"}, `"a"."b c"`: {"a", "b c"}, "a b": {"a b"}, "a.": {"a."}, "1a": {"1a"}, "größe": {"größe"}, "a-b": {"a-b"}, "'": {"'"},
	} {
		require.Equal(t, want, schemaParts(text), text)
	}
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		cmd  *pb.CommandStatementIngest
		st   Statement
		want []string
		fail bool
	}{
		{&pb.CommandStatementIngest{Table: "t"}, Statement{}, []string{"t"}, false},
		{&pb.CommandStatementIngest{Table: "t.x", Schema: text("s")}, Statement{}, []string{"s", "t.x"}, false},
		{&pb.CommandStatementIngest{Table: "t", Schema: text("s"), Catalog: text("c")}, Statement{}, []string{"c", "s", "t"}, false},
		{&pb.CommandStatementIngest{Table: "t", Schema: text("a.b")}, Statement{}, nil, true},
		{&pb.CommandStatementIngest{Table: "t", Schema: text("a.b")}, Statement{Catalog: "c"}, []string{"c", "a", "b", "t"}, false},
		{&pb.CommandStatementIngest{Table: "t", Catalog: text("c")}, Statement{}, nil, true},
		{&pb.CommandStatementIngest{Table: "t", Catalog: text("c")}, Statement{Schema: "s"}, []string{"c", "s", "t"}, false},
	} {
		got, err := ingestTarget(c.cmd, c.st)
		require.Equal(t, c.fail, err != nil)
		require.Equal(t, c.want, got)
	}
}

func TestColumnsOf_Refusals(t *testing.T) {
	f := func(name string, typ arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: typ} }
	for says, fields := range map[string][]arrow.Field{
		"two columns a":      {f("a", arrow.PrimitiveTypes.Int8), f("a", arrow.PrimitiveTypes.Int8)},
		"column 2":           {f("a", arrow.PrimitiveTypes.Int8), f("", arrow.PrimitiveTypes.Int8)},
		"duration":           {f("d", arrow.FixedWidthTypes.Duration_us)},
		"interval":           {f("d", arrow.FixedWidthTypes.MonthInterval)},
		"38 digits":          {f("d", &arrow.Decimal256Type{Precision: 40})},
		"string_view inside": {f("l", arrow.ListOf(arrow.BinaryTypes.StringView))},
		"dense_union":        {f("u", arrow.DenseUnionOf([]arrow.Field{f("x", arrow.PrimitiveTypes.Int8)}, []arrow.UnionTypeCode{0}))},
		"run_end_encoded":    {f("r", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8))},
		"dictionary<values=": {f("s", arrow.StructOf(f("d", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String})))},
	} {
		_, err := columnsOf(arrow.NewSchema(fields, nil), &planv1.Schema{})
		require.Equal(t, codes.InvalidArgument, status.Code(err), says)
		require.ErrorContains(t, err, says)
	}
}

// A compressed message says itself how large it wants to become.
func TestBoundedAllocator_RefusesMoreThanItsLimit(t *testing.T) {
	a := &boundedAllocator{limit: 100}
	require.Len(t, a.Allocate(60), 60)
	require.Panics(t, func() { a.Allocate(60) })
	a = &boundedAllocator{limit: 100}
	b := a.Reallocate(80, a.Allocate(60))
	require.Len(t, b, 80)
	require.Panics(t, func() { a.Reallocate(200, b) })
	a = &boundedAllocator{limit: 100}
	for range 10 {
		a.Free(a.Allocate(90))
	}
	require.Panics(t, func() { a.Allocate(-1) })
	require.Error(t, guarded("x", func() error { a.Allocate(1 << 40); return nil }))
}
