package host

import (
	"os"
	"sync"
	"time"
)

// streams are the two pipes of a process. The host keeps them rather than exec.Cmd, whose Wait would block as long as any process holds
// the other end.
type streams struct {
	outR, outW, errR, errW *os.File
	pumps                  sync.WaitGroup
}

func newStreams() (*streams, error) {
	s := &streams{}
	var err error
	if s.outR, s.outW, err = os.Pipe(); err != nil {
		return nil, err
	}
	if s.errR, s.errW, err = os.Pipe(); err != nil {
		s.outR.Close()
		s.outW.Close()
		return nil, err
	}
	return s, nil
}

func (s *streams) closeWriters() {
	s.outW.Close()
	s.errW.Close()
}

func (s *streams) closeReaders() {
	s.outR.Close()
	s.errR.Close()
}

// pump reads both pipes until they end.
func (s *streams) pump(p *process) {
	s.pumps.Go(func() { greet(s.outR, p.run.sock, p.outW, p.logs, p.greeted) })
	s.pumps.Go(func() { p.logs.drain(s.errR, "stderr") })
}

// wait waits for the end of both pipes, and ends them itself where somebody holds them open.
func (s *streams) wait(patience time.Duration) {
	t := time.AfterFunc(patience, s.closeReaders)
	s.pumps.Wait()
	t.Stop()
	s.closeReaders()
}
