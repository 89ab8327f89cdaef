package store

import (
	"context"
	"net"
	"time"
)

// stallConn fails when nothing moves in either direction for a while, so that
// a server that accepts and then says nothing cannot hang a stage. A limit on
// the whole request would forbid large objects on slow lines.
type stallConn struct {
	net.Conn
	limit time.Duration
}

func (c *stallConn) Read(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write also gives a waiting Read more time: an answer comes after the body.
func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		err = c.extend()
	}
	return n, err
}

func (c *stallConn) extend() error { return c.Conn.SetDeadline(time.Now().Add(c.limit)) }

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// withStallLimit wraps what dial returns.
func withStallLimit(dial dialFunc, limit time.Duration) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &stallConn{Conn: conn, limit: limit}, nil
	}
}
