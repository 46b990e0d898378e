package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
)

const logKeys = 100_000

// writeLog writes an access log of a day of a busy site, with skewed clients and times that are out of order by up to a
// minute.
func writeLog(path string, lines int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	clients := rand.NewZipf(random, 1.1, 10, logKeys-1)
	w := bufio.NewWriterSize(f, 1<<20)
	for n := range lines {
		client, second := clients.Uint64(), n/120+random.IntN(60)
		fmt.Fprintf(w, "10.%d.%d.%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /presentations/%d/images/search.png HTTP/1.1\" 200 203023"+
			" \"http://example.org/presentations/2013/\" \"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko)"+
			" Chrome/32.0 Safari/537.36\"\n",
			client>>16, client>>8&255, client&255, second/3600%24, second/60%60, second%60, n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
