package filter

import "testing"

func TestKeysOfLines(t *testing.T) {
	for _, test := range []struct{ field, delimiter, line, want string }{
		{"host", "", "https://Example.ORG/path?q=http://other/\n", "example.org"},
		{"host", "", "GET http://user:p@ss@host:8080/ 200", "host"},
		{"host", "", "a \"ftp://files\" b", "files"},
		{"host", "", "http://[2001:DB8::1]:80/x", "[2001:db8::1]"},
		{"host", "", "http://[broken:1", "[broken"},
		{"host", "", "http://host#fragment", "host"},
		{"host", "", "http://host\n", "host"},
		{"host", "", "http://host\r\n", "host"},
		{"host", "", "http://", ""},
		{"host", "", "no address\n", ""},
		{"1", "", "one two\n", "one"},
		{"2", "", "  one\t \ttwo\r\n", "two"},
		{"3", "", "one two\n", ""},
		{"1", "", "\n", ""},
		{"1", "", "", ""},
		{"1", ",", "one,two\n", "one"},
		{"2", ",", "one,,three\n", ""},
		{"3", ",", "one,,three\r\n", "three"},
		{"4", ",", "one,,three\n", ""},
		{"2", "::", "a:b::c\n", "c"},
		{"1", ",", "with space,x\n", "with space"},
	} {
		key, err := ParseKey(test.field, test.delimiter)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(key([]byte(test.line))); got != test.want {
			t.Errorf("key %s, delimiter %q, of %q: got %q, want %q", test.field, test.delimiter, test.line, got, test.want)
		}
	}
}

func TestFieldsThatAreNoKeyAreRefused(t *testing.T) {
	for _, test := range [][2]string{{"", ""}, {"0", ""}, {"-1", ""}, {"x", ""}, {"99999999999999999999", ""}, {"host", ","}} {
		if _, err := ParseKey(test[0], test[1]); err == nil {
			t.Errorf("key %q, delimiter %q: got no error", test[0], test[1])
		}
	}
}
