package tui

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// guardScript waits for a word on its standard input. If the input ends without one, the UI's process has died, and it puts
// the terminal's settings back, leaves the other screen, shows the cursor and ends bracketed paste. It is not a part of the
// terminal's foreground then, so the signal for writing settings from the background must be ignored.
const guardScript = `trap '' INT QUIT TERM HUP TTOU TSTP
read -r word || { stty "$1" <&3; printf '\033[?1049l\033[?25h\033[?2004l' >&3; }`

// guard watches over the terminal while the UI has it, against what a program cannot do for itself: it is killed, or a
// goroutine panics. The returned function ends it. Where there is no shell or stty, there is no guard; the UI does its work.
func guard(terminal *os.File) (release func()) {
	nothing := func() {}
	look := exec.Command("stty", "-g")
	look.Stdin = terminal
	settings, err := look.Output()
	if err != nil {
		return nothing
	}
	watch := exec.Command("sh", "-c", guardScript, "sh", strings.TrimSpace(string(settings)))
	watch.ExtraFiles = []*os.File{terminal}
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	word, err := watch.StdinPipe()
	if err != nil || watch.Start() != nil {
		return nothing
	}
	return func() {
		_, _ = io.WriteString(word, "released\n") // if it is gone, it has nothing to hear
		_ = word.Close()
		_ = watch.Wait()
	}
}
