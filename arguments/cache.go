package arguments

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// Cache keeps compiled schemas by the hash of their definition, so that a tool
// is compiled once however often its list is fetched. Failures are kept too: a
// schema that does not compile is not tried at every call. It is bounded by
// number and by size, least recently used first out.
type Cache struct {
	size int

	mu    sync.Mutex
	items map[[sha256.Size]byte]*list.Element
	order *list.List // of *cached, the most recent in front
	bytes int        // of the definitions in it
}

// maxCacheBytes of definitions; compiled they take some twenty times that.
const maxCacheBytes = 16 << 20

type cached struct {
	key  [sha256.Size]byte
	size int
	once sync.Once
	s    *Schema
	err  error
}

// NewCache returns a cache for that many schemas; zero or less means 4096.
func NewCache(size int) *Cache {
	if size <= 0 {
		size = 4096
	}
	return &Cache{size: size, items: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// Compile is [Compile], remembered.
func (c *Cache) Compile(schema []byte) (*Schema, error) {
	entry := c.entry(sha256.Sum256(schema), min(len(schema), maxSchemaBytes))
	// Outside the lock: one slow schema holds up only those who want the same.
	entry.once.Do(func() { entry.s, entry.err = Compile(schema) })
	return entry.s, entry.err
}

func (c *Cache) entry(key [sha256.Size]byte, size int) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*cached)
	}
	entry := &cached{key: key, size: size}
	c.items[key] = c.order.PushFront(entry)
	c.bytes += size
	for c.order.Len() > c.size || c.bytes > maxCacheBytes {
		oldest := c.order.Remove(c.order.Back()).(*cached)
		delete(c.items, oldest.key)
		c.bytes -= oldest.size
	}
	return entry
}
