package journal

// ID of the transaction.
func (t *Tx) ID() int { return t.tx.ID() }

// Waiting is how many updates wait for a transaction.
func (j *Journal) Waiting() int {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return len(j.queue.list)
}
