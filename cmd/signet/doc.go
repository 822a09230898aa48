// Command signet is the command line, the scheduler and the embedded cluster. It needs no cgo.
package main
