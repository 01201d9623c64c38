package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	streamHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
	object     = `{"id":"chatcmpl-4b1f0c9a2d7e4f60","object":"chat.completion.chunk","created":1796042603,"model":"m","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s%s}]%s}`
	token      = `"content":" hello"`
	prefilled  = `{"id":"x","object":"chat.completion","created":1796042603,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":" hello"},"finish_reason":"length"}],"usage":{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26},"kv_transfer_params":{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2,3]],"remote_engine_id":"e","remote_host":"127.0.0.1","remote_port":5600,"remote_request_id":"r","remote_num_tokens":25,"tp_size":1}}`
	usage      = `{"id":"chatcmpl-4b1f0c9a2d7e4f60","object":"chat.completion.chunk","created":1796042603,"model":"m","choices":[],"usage":{"prompt_tokens":25,"completion_tokens":%d,"total_tokens":%d}}`
	whole      = `{"id":"chatcmpl-4b1f0c9a2d7e4f60","object":"chat.completion","created":1796042603,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":25,"completion_tokens":%d,"total_tokens":%d}}`
)

// wanted is what a request's body asks of the engine. Engines are asked in several spellings of the same JSON.
type wanted struct {
	prefill, stream, ids, usage bool
	chunks                      int
	gap                         time.Duration
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go converse(connection)
	}
}

func converse(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil || answer(connection, request, body) != nil {
			return
		}
	}
}

func answer(connection io.Writer, request *http.Request, body []byte) error {
	if request.Method != http.MethodPost {
		return respond(connection, `{"object":"list","data":[{"id":"m","object":"model","root":"m","max_model_len":4096}]}`)
	}
	asked := understand(body)
	switch {
	case asked.prefill:
		return respond(connection, prefilled)
	case asked.stream:
		return stream(connection, asked)
	}
	text := bytes.Repeat([]byte(" hello"), asked.chunks)
	return respond(connection, fmt.Sprintf(whole, text, asked.chunks, asked.chunks+25))
}

func understand(body []byte) wanted {
	gap := time.Duration(number(body, `bench-gap-`)) * time.Microsecond
	return wanted{
		prefill: set(body, `"do_remote_decode"`),
		stream:  set(body, `"stream"`),
		ids:     set(body, `"return_token_ids"`),
		usage:   set(body, `"include_usage"`),
		chunks:  number(body, `"max_tokens"`),
		gap:     gap,
	}
}

// set tells whether a member is true, with or without a space after its colon.
func set(body []byte, key string) bool {
	_, value, found := bytes.Cut(body, []byte(key))
	return found && bytes.HasPrefix(bytes.TrimLeft(value, ": "), []byte("true"))
}

func number(body []byte, key string) int {
	_, value, _ := bytes.Cut(body, []byte(key))
	value = bytes.TrimLeft(value, ": ")
	end := bytes.IndexFunc(value, func(r rune) bool { return r < '0' || r > '9' })
	found, _ := strconv.Atoi(string(value[:max(end, 0)]))
	return found
}

func respond(connection io.Writer, content string) error {
	_, err := fmt.Fprintf(connection, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(content), content)
	return err
}

func stream(connection io.Writer, asked wanted) error {
	head := streamHead + frame(fmt.Sprintf(object, `"role":"assistant","content":""`, "null", "", ""))
	plain, last := frame(event(asked, "null")), frame(event(asked, `"length"`))
	began := time.Now()
	for index := range asked.chunks {
		time.Sleep(time.Until(began.Add(time.Duration(index) * asked.gap)))
		text := plain
		if index == 0 {
			text = head + plain
		} else if index == asked.chunks-1 {
			text = last
		}
		if _, err := io.WriteString(connection, text); err != nil {
			return err
		}
	}
	end := frame("[DONE]") + "0\r\n\r\n"
	if asked.usage {
		end = frame(fmt.Sprintf(usage, asked.chunks, asked.chunks+25)) + end
	}
	_, err := io.WriteString(connection, end)
	return err
}

func event(asked wanted, finish string) string {
	ids := ""
	if asked.ids {
		ids = `,"token_ids":[31373]`
	}
	return fmt.Sprintf(object, token, finish, ids, "")
}

func frame(content string) string {
	content = "data: " + content + "\n\n"
	return fmt.Sprintf("%x\r\n%s\r\n", len(content), content)
}
