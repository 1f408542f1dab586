package engines

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// postgres is a connection that speaks as much of PostgreSQL's protocol, version
// 3.0, as a test of bound parameters needs: the statement goes out first, and the
// parameters follow it as text of types that the server finds.
// https://www.postgresql.org/docs/15/protocol-message-formats.html
type postgres struct {
	conn net.Conn
	in   *bufio.Reader
}

func connect(socket, user string) (*postgres, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	p := &postgres{conn, bufio.NewReader(conn)}
	startup := binary.BigEndian.AppendUint32(nil, 3<<16)
	startup = append(startup, "user\x00"+user+"\x00database\x00postgres\x00\x00"...)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(startup)+4)), startup...)); err != nil {
		return nil, err
	}
	if _, err := p.answer(); err != nil {
		return nil, err
	}
	return p, nil
}

// query runs one statement with bound parameters and returns its rows. A nil is
// an SQL null.
func (p *postgres) query(statement string, params []*string) ([][]string, error) {
	if strings.Contains(statement, "\x00") {
		return nil, errors.New("a statement cannot hold a zero byte")
	}
	parse := append([]byte("\x00"+statement+"\x00"), 0, 0)
	bind := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 0}, uint16(len(params)))
	for _, v := range params {
		if v == nil {
			bind = binary.BigEndian.AppendUint32(bind, 1<<32-1)
			continue
		}
		bind = append(binary.BigEndian.AppendUint32(bind, uint32(len(*v))), *v...)
	}
	bind = append(bind, 0, 0)
	var out []byte
	for _, m := range []struct {
		kind byte
		body []byte
	}{{'P', parse}, {'B', bind}, {'E', []byte{0, 0, 0, 0, 0}}, {'S', nil}} {
		out = append(binary.BigEndian.AppendUint32(append(out, m.kind), uint32(len(m.body)+4)), m.body...)
	}
	if _, err := p.conn.Write(out); err != nil {
		return nil, err
	}
	return p.answer()
}

// answer reads until the server is ready again.
func (p *postgres) answer() ([][]string, error) {
	var rows [][]string
	var failed error
	for {
		var head [5]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(p.in, body); err != nil {
			return nil, err
		}
		switch head[0] {
		case 'E':
			failed = fmt.Errorf("PostgreSQL says: %s", strings.ReplaceAll(string(body), "\x00", " "))
		case 'D':
			rows = append(rows, columns(body))
		case 'Z':
			return rows, failed
		}
	}
}

func columns(body []byte) []string {
	row := make([]string, binary.BigEndian.Uint16(body))
	body = body[2:]
	for i := range row {
		n := int32(binary.BigEndian.Uint32(body))
		body = body[4:]
		if n >= 0 {
			row[i], body = string(body[:n]), body[n:]
		}
	}
	return row
}
