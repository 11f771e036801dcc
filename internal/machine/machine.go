// Package machine says where things are on this machine: programs, whatever PATH a
// client has; variables in .env files; ports that docker compose publishes.
//
// It reads files and asks the user's login shell for its PATH. Nothing else is
// started, nothing is written, and no value of a variable is returned.
package machine
