package main

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

// redisServer is a real redis-server, which keeps nothing on disk.
type redisServer struct {
	address string
	cmd     *exec.Cmd
}

func startRedis(folder string) (*redisServer, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	s := &redisServer{address: address.String()}
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(address.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis: %w; the Debian package redis-server has it, and -engine memory needs none", err)
	}
	for since := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", s.address); err == nil {
			return s, conn.Close()
		}
		if time.Since(since) > patience {
			s.stop()
			return nil, fmt.Errorf("redis: redis-server did not listen on %s within %v", s.address, patience)
		}
	}
}

func (s *redisServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
