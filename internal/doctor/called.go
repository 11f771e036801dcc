package doctor

// Called returns what a tool answered that was called at the top of the ladder,
// and whether the tool says that it failed. ok is false if none was called, or it
// did not answer.
func (c *Case) Called() (result []byte, failed, ok bool) {
	if c.saw == nil || c.saw.Result == nil {
		return nil, false, false
	}
	return c.saw.Result, c.saw.ToolError, true
}
