package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"
)

// Plan says what the clients ask for.
type Plan struct {
	TLS, Stream             bool
	Key                     string
	Clients, Chunks, Prompt int
	Gap, Ramp, For          time.Duration
}

// Result is what the clients saw. Chunks are events with a token; times are milliseconds.
type Result struct {
	Requests, Failed, Chunks int
	Seconds                  float64
	FirstError               string
	P50, P99                 float64
	Latency50                float64
}

type tally struct {
	mutex            sync.Mutex
	first, latency   []float64
	failed, chunks   int
	firstError       string
	started, release time.Time
}

func ask(address string, plan Plan) Result {
	counts := &tally{started: time.Now()}
	counts.release = counts.started.Add(plan.For)
	request := compose(address, plan)
	var all sync.WaitGroup
	for index := range plan.Clients {
		all.Add(1)
		go func() {
			defer all.Done()
			time.Sleep(plan.Ramp * time.Duration(index) / time.Duration(plan.Clients))
			client(address, plan, request, counts)
		}()
	}
	all.Wait()
	return Result{
		Requests: len(counts.latency), Failed: counts.failed, Chunks: counts.chunks, FirstError: counts.firstError,
		Seconds: time.Since(counts.started).Seconds(),
		P50:     quantile(counts.first, 0.5), P99: quantile(counts.first, 0.99), Latency50: quantile(counts.latency, 0.5),
	}
}

func compose(address string, plan Plan) []byte {
	prompt := strings.Repeat("what a fine day ", plan.Prompt/16+1)[:plan.Prompt]
	body := fmt.Sprintf(`{"model":"m","stream":%t,"max_tokens":%d,"user":"bench-gap-%d-","messages":[{"role":"user","content":"%s"}]}`,
		plan.Stream, plan.Chunks, plan.Gap.Microseconds(), prompt)
	key := ""
	if plan.Key != "" {
		key = "authorization: Bearer " + plan.Key + "\r\n"
	}
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nhost: %s\r\n%scontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
		address, key, len(body), body)
}

func client(address string, plan Plan, request []byte, counts *tally) {
	var connection net.Conn
	var reader *bufio.Reader
	for begun := false; !begun || time.Now().Before(counts.release); begun = true {
		var err error
		if connection == nil {
			if connection, err = dial(address, plan.TLS); err != nil {
				connection = nil
				counts.fail(err)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			reader = bufio.NewReader(connection)
		}
		if err = once(connection, reader, request, counts); err != nil {
			counts.fail(err)
			connection.Close()
			connection = nil
		}
	}
	if connection != nil {
		connection.Close()
	}
}

func dial(address string, secure bool) (net.Conn, error) {
	if secure {
		// The server is this benchmark's own, with a certificate that it has just made.
		return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	}
	return net.Dial("tcp", address)
}

func once(connection net.Conn, reader *bufio.Reader, request []byte, counts *tally) error {
	began := time.Now()
	if _, err := connection.Write(request); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	first, chunks, err := read(response, began)
	if err != nil {
		return err
	}
	counts.add(first, time.Since(began), chunks)
	return nil
}

// read counts the events with a token and finds out when the first came; an answer that is not streamed has none.
func read(response *http.Response, began time.Time) (time.Duration, int, error) {
	if !strings.HasPrefix(response.Header.Get("content-type"), "text/event-stream") {
		_, err := io.Copy(io.Discard, response.Body)
		return 0, 0, err
	}
	lines := bufio.NewReaderSize(response.Body, 2048)
	var first time.Duration
	chunks, ended := 0, false
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.Contains(line, []byte(token)) {
			chunks++
			if first == 0 {
				first = time.Since(began)
			}
		} else if bytes.HasPrefix(line, []byte("data: [DONE]")) {
			ended = true
		}
		if err == io.EOF && ended {
			return first, chunks, nil
		}
		if err != nil {
			return 0, 0, fmt.Errorf("stream broke off after %d chunks: %w", chunks, err)
		}
	}
}

func (counts *tally) add(first, latency time.Duration, chunks int) {
	counts.mutex.Lock()
	defer counts.mutex.Unlock()
	if first > 0 {
		counts.first = append(counts.first, first.Seconds()*1000)
	}
	counts.latency = append(counts.latency, latency.Seconds()*1000)
	counts.chunks += chunks
}

func (counts *tally) fail(err error) {
	counts.mutex.Lock()
	defer counts.mutex.Unlock()
	counts.failed++
	if counts.firstError == "" {
		counts.firstError = err.Error()
	}
}

func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	return values[int(share*float64(len(values)-1))]
}
