// Package clientconfig finds, reads and edits the configuration files of MCP
// clients without losing a byte that is not ours.
//
// [Clients] is the table of clients we know: which files each of them reads on
// which system, under which key the servers stand, what an entry looks like,
// which variables are replaced where. It is data (clients.jsonc), so that a
// client that moves its file is a changed row.
//
// [System.Find] looks for those files and [File.Servers] are the entries in them, in one
// shape for all clients and formats. Every value knows its file, line, column
// and its [Path] in the document. What is wrong with a file or an entry is a
// [Problem], also with its place; a file that cannot be parsed is a File with
// one problem and no servers.
//
// [File.Set], [File.Remove] and [File.Add] return a changed copy. They replace, insert or
// delete the bytes of one value and keep the rest: comments, order,
// indentation, line ends, a byte order mark, keys we have never heard of. The
// result is parsed again and compared with what was asked for before anybody
// sees it, so an edit that would change anything else is refused ([ErrEdit]).
//
// A [Store] writes a changed File: all of it or nothing, and only if the file
// still holds the bytes we read. It keeps what was there before, and [Store.Restore]
// brings it back.
//
// Nothing here starts a process or touches the network. Values may be secrets,
// therefore no error and no problem quotes one.
package clientconfig
