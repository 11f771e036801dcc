//go:build unix && !linux

package front

// pollReadHangUp does not exist here: of a socket it is only seen when both
// directions are closed.
const pollReadHangUp = 0
