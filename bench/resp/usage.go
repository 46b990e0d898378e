package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// usage reads the CPU time of a server, and of its Redis.
type usage struct{ pid, redis string }

// read returns µs.
func (u usage) read() (used float64, err error) {
	if u.pid != "" {
		text, err := os.ReadFile("/proc/" + u.pid + "/stat")
		if err != nil {
			return 0, err
		}
		const tick = 10_000 // µs, on every Linux
		_, behind, _ := strings.Cut(string(text), ") ")
		for _, field := range strings.Fields(behind)[11:13] { // utime and stime
			n, _ := strconv.ParseFloat(field, 64)
			used += n * tick
		}
	}
	if u.redis == "" {
		return used, nil
	}
	conn, err := net.Dial("tcp", u.redis)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("INFO cpu\r\nQUIT\r\n")); err != nil {
		return 0, err
	}
	found := 0
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if seconds, err := strconv.ParseFloat(value, 64); err == nil && (name == "used_cpu_sys" || name == "used_cpu_user") {
			used, found = used+seconds*1e6, found+1
		}
	}
	if found != 2 {
		return 0, fmt.Errorf("INFO cpu of Redis has %d of 2 figures", found)
	}
	return used, nil
}
