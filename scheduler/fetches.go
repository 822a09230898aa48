package scheduler

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A stream of a result that its client does not read keeps a few messages in memory, for as long as the client likes. So there are only so many, and
// their messages are small.
const (
	fetchesPerUser = 64
	fetchesAtOnce  = 256
	// fetchChunk is what a message of a result carries. With its header it fits what gRPC's buffers hold, 32 KiB: the next larger ones hold 1 MiB, and
	// would be taken whole.
	fetchChunk = 32<<10 - 1<<10
)

// fetches counts the open streams of FetchResult. Its zero value is ready.
type fetches struct {
	mu   sync.Mutex
	all  int
	open map[string]int // by principal
}

// begin takes a place; end gives it back.
func (f *fetches) begin(who string) (end func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.open[who] >= fetchesPerUser:
		return nil, status.Errorf(codes.ResourceExhausted, "%s has %d results open, the limit for one principal; read them to their end or close them, then fetch again", who, fetchesPerUser)
	case f.all >= fetchesAtOnce:
		return nil, status.Errorf(codes.ResourceExhausted, "%d results are open, the limit of this scheduler; fetch again when others have been read", fetchesAtOnce)
	}
	if f.open == nil {
		f.open = map[string]int{}
	}
	f.all++
	f.open[who]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all--
		if f.open[who]--; f.open[who] == 0 {
			delete(f.open, who)
		}
	}, nil
}
