package httplimit_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// echoWebSocket answers the handshake of RFC 6455 and sends each short text frame back, until the client closes.
func echoWebSocket(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		accept := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(accept[:]))
		go func() {
			defer conn.Close()
			for {
				opcode, text, err := readFrame(buffer.Reader)
				if err != nil || opcode == 8 { // closed
					return
				}
				_, _ = conn.Write(append([]byte{0x80 | opcode, byte(len(text))}, text...))
			}
		}()
	}
}

// readFrame reads a frame of less than 126 bytes.
func readFrame(r *bufio.Reader) (opcode byte, text []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	var mask [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return 0, nil, err
		}
	}
	text = make([]byte, head[1]&0x7f)
	_, err = io.ReadFull(r, text)
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return head[0] & 0x0f, text, err
}

// The handshake of a WebSocket is a request like any other, and the connection holds its slot until it is closed.
func TestAWebSocketIsUpgradedAndHoldsItsSlot(t *testing.T) {
	server, held := slotServer(t, false, echoWebSocket(t))
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("handshake: %v, %v", response, err)
	}
	for _, text := range []string{"hello", "again"} {
		mask, frame := []byte{1, 2, 3, 4}, []byte{0x81, 0x80 | byte(len(text)), 1, 2, 3, 4}
		for i := range len(text) {
			frame = append(frame, text[i]^mask[i%4])
		}
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		if opcode, got, err := readFrame(reader); err != nil || opcode != 1 || string(got) != text {
			t.Fatalf("echo %d %q, %v, want text %q", opcode, got, err, text)
		}
	}
	if got := held(); got != 1 {
		t.Errorf("%d slots are held by the open WebSocket, want 1", got)
	}
	if _, err := conn.Write([]byte{0x88, 0x80, 1, 2, 3, 4}); err != nil { // the close frame
		t.Fatal(err)
	}
	eventually(t, "release of the WebSocket's slot", func() bool { return held() == 0 })
}
