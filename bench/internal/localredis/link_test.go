package localredis

import (
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// Links run in this program, started again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == LinkFlag {
		if err := ServeLinks(); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// A link that delays by more than it says hides what is measured through it.
func TestALinkDelaysByAsMuchAsItSays(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		if conn, err := echo.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	const delay = 50 * time.Microsecond
	link, end, err := StartLink(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	conn, err := net.Dial("tcp", link)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	longest := time.Minute
	if runtime.GOOS == "linux" { // elsewhere an idle program sleeps for at least 1 ms
		longest = time.Millisecond
	}
	shortest := time.Minute
	for range 5000 { // one that nothing else has held up is enough
		began, word := time.Now(), make([]byte, 1)
		if _, err := conn.Write(word); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, word); err != nil {
			t.Fatal(err)
		}
		if shortest = min(shortest, time.Since(began)); shortest < longest {
			break
		}
	}
	if shortest < 2*delay || shortest >= longest {
		t.Errorf("the shortest round trip takes %v, want at least %v and less than %v", shortest, 2*delay, longest)
	}
	end()
	if _, err := net.Dial("tcp", link); err == nil {
		t.Error("the link is still there after its end")
	}
}
