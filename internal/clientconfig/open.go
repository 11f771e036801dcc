package clientconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxSize is the largest file we read. The largest real one, the history of a
// busy client, has a few megabytes.
const maxSize = 16 << 20

var (
	errNotFile  = errors.New("not a regular file")
	errTooLarge = fmt.Errorf("larger than %d MiB", maxSize>>20)
)

// readFile reads a regular file. Opening a pipe would wait for a writer, so
// the file is looked at before it is opened and again when it is.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkFile(info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := checkFile(info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, errTooLarge
	}
	return data, nil
}

func checkFile(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errNotFile
	case info.Size() > maxSize:
		return errTooLarge
	}
	return nil
}

// plainError is an error without the path, which the position has already.
func plainError(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}
