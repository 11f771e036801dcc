package arguments

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// Cache keeps compiled schemas by the hash of their definition, so that a tool
// is compiled once however often its list is fetched. Failures are kept too: a
// schema that does not compile is not tried at every call. It is bounded by
// number, least recently used first out.
type Cache struct {
	size int

	mu    sync.Mutex
	items map[[sha256.Size]byte]*list.Element
	order *list.List // of *cached, the most recent in front
}

type cached struct {
	key  [sha256.Size]byte
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
	entry := c.entry(sha256.Sum256(schema))
	// Outside the lock: one slow schema holds up only those who want the same.
	entry.once.Do(func() { entry.s, entry.err = Compile(schema) })
	return entry.s, entry.err
}

func (c *Cache) entry(key [sha256.Size]byte) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*cached)
	}
	entry := &cached{key: key}
	c.items[key] = c.order.PushFront(entry)
	if c.order.Len() > c.size {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.items, oldest.Value.(*cached).key)
	}
	return entry
}
