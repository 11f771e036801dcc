package wire

import "sync"

// buffer is a reusable piece of memory behind one large message.
type buffer struct {
	b     []byte
	class int
}

// The sizes buffers come in: 8 KiB, 32 KiB, … 8 MiB. Larger ones are rare and
// are left to the garbage collector.
const (
	smallestBuffer = 8 << 10
	bufferClasses  = 6
	largestBuffer  = smallestBuffer << (2 * (bufferClasses - 1))
)

var bufferPools [bufferClasses]sync.Pool

// newBuffer returns a buffer of at least n bytes.
func newBuffer(n int) *buffer {
	size := smallestBuffer
	for class := range bufferClasses {
		if n <= size {
			if b, ok := bufferPools[class].Get().(*buffer); ok {
				return b
			}
			return &buffer{b: make([]byte, size), class: class}
		}
		size *= 4
	}
	return &buffer{b: make([]byte, n), class: -1}
}

func (b *buffer) release() {
	if b.class >= 0 {
		bufferPools[b.class].Put(b)
	}
}
