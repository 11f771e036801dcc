package machine

import system "golang.org/x/sys/windows"

// profileEnviron is what Windows makes for a program of this user from the settings
// of the system and of the account, without what a running shell or its profile has
// added. nil if it does not say.
func profileEnviron() []string {
	list, err := system.GetCurrentProcessToken().Environ(false)
	if err != nil {
		return nil
	}
	return list
}
