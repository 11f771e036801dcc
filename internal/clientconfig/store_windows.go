package clientconfig

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

// keepOwner has nothing to do: rename keeps the security of the file it replaces.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// names is how many names a file has.
func names(path string, _ fs.FileInfo) int {
	f, err := os.Open(path)
	if err != nil {
		return 1
	}
	defer f.Close()
	var info syscall.ByHandleFileInformation
	if syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info) != nil {
		return 1
	}
	return int(info.NumberOfLinks)
}

// syncDir has nothing to do: NTFS keeps its folders in a journal.
func syncDir(string) error { return nil }

var replaceFile = syscall.NewLazyDLL("kernel32.dll").NewProc("ReplaceFileW")

// rename puts one file in the place of another. ReplaceFile keeps the access
// rights of the old one; not all file systems have it.
func rename(from, to string) error {
	if _, err := os.Lstat(to); err == nil && replaceFile.Find() == nil {
		const ignoreMergeErrors = 2
		replaced, err1 := syscall.UTF16PtrFromString(to)
		replacement, err2 := syscall.UTF16PtrFromString(from)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		ok, _, _ := replaceFile.Call(uintptr(unsafe.Pointer(replaced)), uintptr(unsafe.Pointer(replacement)), 0, ignoreMergeErrors, 0, 0)
		if ok != 0 {
			return nil
		}
	}
	return os.Rename(from, to)
}

// tryLock opens a file that nobody else may open at the same time.
func tryLock(path string) (func(), error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const sharingViolation syscall.Errno = 32
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == sharingViolation {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	return func() { syscall.CloseHandle(h) }, nil
}
