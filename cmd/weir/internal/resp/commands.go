package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// command is an entry of the table. A command that decides may join a batch; it answers by asking, or with its error.
type command struct {
	run     func(*conn, [][]byte) error
	arity   int64 // with the name; negative: at least
	decides bool
}

// commands are all commands, by their names in capitals.
var commands map[string]command

func init() { // an initialiser would refer to itself through COMMAND
	commands = map[string]command{
		"CL.THROTTLE":  {(*conn).cell, -5, true},
		"WEIR.TAKE":    {verb(weir.OpTake, auth.Take), -3, true},
		"WEIR.PEEK":    {verb(weir.OpPeek, auth.Peek), -3, true},
		"WEIR.RECORD":  {verb(weir.OpRecord, auth.Take), -3, true},
		"WEIR.RETURN":  {verb(weir.OpReturn, auth.Refund), -3, true},
		"WEIR.WAIT":    {(*conn).wait, -4, false},
		"WEIR.RESERVE": {(*conn).reserve, -4, false},
		"WEIR.SETTLE":  {(*conn).settle, -2, false},
		"WEIR.RESET":   {(*conn).reset, 3, false},
		"DEL":          {(*conn).forget, -2, false},
		"PING":         {(*conn).ping, -1, false},
		"ECHO":         {(*conn).echo, 2, false},
		"HELLO":        {(*conn).hello, -1, false},
		"AUTH":         {(*conn).auth, -2, false},
		"SELECT":       {(*conn).choose, 2, false},
		"CLIENT":       {(*conn).client, -2, false},
		"COMMAND":      {(*conn).table, -1, false},
		"INFO":         {(*conn).info, -1, false},
		"CONFIG":       {(*conn).config, -2, false},
		"QUIT":         {(*conn).quit, -1, false},
	}
}

// pairs begins a map of n pairs.
func (c *conn) pairs(n int) {
	if c.three {
		c.out = appendHead(c.out, '%', n)
	} else {
		c.out = appendHead(c.out, '*', 2*n)
	}
}

func (c *conn) ping(args [][]byte) error {
	switch len(args) {
	case 1:
		c.out = appendLine(c.out, '+', "PONG")
	case 2:
		c.out = appendBulk(c.out, string(args[1]))
	default:
		return errArity("ping")
	}
	return nil
}

func (c *conn) echo(args [][]byte) error {
	if len(args) != 2 {
		return errArity("echo")
	}
	c.out = appendBulk(c.out, string(args[1]))
	return nil
}

// hello serves HELLO [2|3 [AUTH name token] [SETNAME name]].
func (c *conn) hello(args [][]byte) error {
	three := c.three
	if len(args) > 1 {
		switch string(args[1]) {
		case "2":
			three = false
		case "3":
			three = true
		default:
			return errors.New("NOPROTO unsupported protocol version")
		}
	}
	for rest := args[min(2, len(args)):]; len(rest) > 0; {
		switch {
		case is(rest[0], "AUTH") && len(rest) >= 3:
			if err := c.enter(rest[2]); err != nil {
				return err
			}
			rest = rest[3:]
		case is(rest[0], "SETNAME") && len(rest) >= 2:
			rest = rest[2:]
		default:
			return fmt.Errorf("ERR syntax error in HELLO option %.32q", rest[0])
		}
	}
	c.three = three
	version := int64(2)
	if three {
		version = 3
	}
	c.pairs(5)
	c.out = appendBulk(appendBulk(c.out, "server"), "weir")
	c.out = appendBulk(appendBulk(c.out, "version"), redisVersion)
	c.out = appendInteger(appendBulk(c.out, "proto"), version)
	c.out = appendBulk(appendBulk(c.out, "mode"), "standalone")
	c.out = appendBulk(appendBulk(c.out, "role"), "master")
	return nil
}

// redisVersion tells clients which commands they may use.
const redisVersion = "7.0.0"

// auth serves AUTH [name] token. The name is ignored: a token says whose it is.
func (c *conn) auth(args [][]byte) error {
	if len(args) != 2 && len(args) != 3 {
		return errArity("auth")
	}
	if err := c.enter(args[len(args)-1]); err != nil {
		return err
	}
	return c.ok()
}

// enter takes the rights of a token. A wrong one leaves the client with those that it has.
func (c *conn) enter(token []byte) error {
	who := c.server.Auth.Identify(string(token), c.tls)
	if !who.Some(auth.All) {
		return errors.New("WRONGPASS the token is unknown")
	}
	c.token, c.who = string(token), who
	return nil
}

// choose serves SELECT 0.
func (c *conn) choose(args [][]byte) error {
	if len(args) != 2 {
		return errArity("select")
	}
	if string(args[1]) != "0" {
		return errors.New("ERR DB index is out of range: there is only database 0")
	}
	return c.ok()
}

// client accepts what client libraries send at the start of a connection. Nothing of it changes an answer.
func (c *conn) client(args [][]byte) error {
	if len(args) < 2 {
		return errArity("client")
	}
	switch name := string(bytes.ToUpper(args[1])); name {
	case "SETINFO", "SETNAME", "NO-EVICT", "NO-TOUCH", "TRACKING":
		return c.ok()
	case "ID":
		c.out = appendInteger(c.out, 1)
	case "GETNAME":
		c.out = appendBulk(c.out, "")
	default:
		return fmt.Errorf("ERR unknown subcommand %.64q of CLIENT", args[1])
	}
	return nil
}

// table serves COMMAND, which lists names and arities. The documentation of commands is in docs/howto/redis-clients.md.
func (c *conn) table(args [][]byte) error {
	switch {
	case len(args) > 1 && is(args[1], "COUNT"):
		c.out = appendInteger(c.out, int64(len(commands)))
		return nil
	case len(args) > 1 && is(args[1], "DOCS"):
		c.pairs(0)
		return nil
	case len(args) > 1:
		return fmt.Errorf("ERR unknown subcommand %.64q of COMMAND", args[1])
	}
	c.out = appendHead(c.out, '*', len(commands))
	for name, known := range commands {
		key := int64(0) // the position of the first key, which no cluster client needs to know of other commands
		if known.decides && !strings.HasPrefix(name, "WEIR.") || name == "DEL" {
			key = 1
		}
		c.out = appendHead(c.out, '*', 6)
		c.out = appendBulk(c.out, strings.ToLower(name))
		c.out = appendInteger(c.out, known.arity)
		c.out = appendHead(c.out, '*', 0)
		for range 3 {
			c.out = appendInteger(c.out, key)
		}
	}
	return nil
}

func (c *conn) info([][]byte) error {
	c.out = appendBulk(c.out, "# Server\r\nredis_version:"+redisVersion+"\r\nserver_name:weir\r\nredis_mode:standalone\r\n# Replication\r\nrole:master\r\n")
	return nil
}

// config serves CONFIG GET, which redis-benchmark sends. Nothing is configured here.
func (c *conn) config(args [][]byte) error {
	if !is(args[min(1, len(args)-1)], "GET") {
		return errors.New("ERR CONFIG knows only GET; the flags and files of weir serve configure it")
	}
	c.pairs(0)
	return nil
}

func (c *conn) quit([][]byte) error {
	c.closes = true
	return c.ok()
}
