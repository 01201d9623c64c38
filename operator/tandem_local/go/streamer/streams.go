package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// streams moves bytes between kubectl and a process or a port in a pod.
type streams struct {
	initCommand []string
}

// Exec runs the process that a specification file describes, on a terminal or on plain pipes.
func (s streams) Exec(ctx context.Context, spec string, _ []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	arguments := append(append([]string{}, s.initCommand[1:]...), spec, "-")
	command := exec.CommandContext(ctx, s.initCommand[0], arguments...)
	command.Env = []string{}
	run := runOnPipes
	if tty {
		run = func(c *exec.Cmd, in io.Reader, out, _ io.Writer) error { return runOnTerminal(c, in, out, resize) }
	}
	err := run(command, in, out, errOut)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

func runOnPipes(command *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	command.Stdout, command.Stderr = out, errOut
	if in == nil {
		return command.Run()
	}
	// Not command.Stdin: waiting would then wait for the client to close its end.
	pipe, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	go func() {
		_, _ = io.Copy(pipe, in)
		_ = pipe.Close()
	}()
	return command.Run()
}

func runOnTerminal(command *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	terminal, err := pty.Start(command)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	_, _ = io.Copy(out, terminal) // ends with an error when the process closes its side
	return command.Wait()
}

// Attach is refused: the runtime keeps no open input of running containers.
func (streams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("attach is not supported by the local cluster: use kubectl exec")
}

// PortForward joins a stream to a loopback port in a pod's network namespace.
func (streams) PortForward(_ context.Context, namespace string, port int32, stream io.ReadWriteCloser) error {
	connection, err := dial(namespace, int(port))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

// dial connects from inside a network namespace. The thread that entered it is never unlocked, so Go ends it.
func dial(namespace string, port int) (*net.TCPConn, error) {
	type result struct {
		connection *net.TCPConn
		err        error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := enter(namespace); err != nil {
			done <- result{nil, err}
			return
		}
		connection, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		done <- result{connection, err}
	}()
	r := <-done
	return r.connection, r.err
}

func enter(namespace string) error {
	file, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", namespace, err)
	}
	defer func() { _ = unix.Close(file) }()
	if err := unix.Setns(file, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", namespace, err)
	}
	return nil
}
