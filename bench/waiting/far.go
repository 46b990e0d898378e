package main

import (
	"net"
	"time"
)

// far has the processes find the server at a distance: everything takes a time, each way.
func (s *stage) far(way time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() { _ = listener.Close() })
	server := s.addr
	s.addr = listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go late(behind, client, way)
			go late(client, behind, way)
		}
	}()
	return nil
}

// late passes on what it reads, until either side ends.
func late(to, from net.Conn, way time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer func() { _ = to.Close() }()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close() // ends the loop below
			}
		}
	}()
	defer close(pieces)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		pieces <- piece{buffer[:n], time.Now().Add(way)}
	}
}
