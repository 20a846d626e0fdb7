//! Child processes that do not outlive us.
//!
//! Three things end a child: [`Process`] is dropped; somebody calls [`Process::kill`]; or this process ends in any way,
//! `kill -9` included, because each child asks the kernel for a SIGKILL when its parent dies (`PR_SET_PDEATHSIG`).
//!
//! For the kernel the parent is the *thread* that made the child. Each test has a thread of its own that ends with the
//! test, and a helper thread ends earlier still; a cluster that is shared by tests would lose its brokers with the
//! first of them. So every child is made by one thread that lives as long as the process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at something that cannot be waited for.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// A child process, killed and reaped on drop.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its standard streams may be taken out of it.
    pub(crate) child: Child,
}

impl Process {
    /// Starts `command` in a process group of its own, so that a Ctrl-C meant for us does not reach it first.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let child = spawn(command)?;
        Ok(Self { child })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it has ended, at most until `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            let ended = self.ended()?;
            if ended.is_some() || Instant::now() >= deadline {
                return Ok(ended);
            }
            thread::sleep(POLL);
        }
    }

    /// Sends a signal, unless the process has ended.
    pub(crate) fn signal(&mut self, signal: libc::c_int) -> io::Result<()> {
        // A child that has ended keeps its pid until it is waited for, and only `ended` does that: the pid is ours.
        if self.ended()?.is_some() {
            return Ok(());
        }
        // SAFETY: kill takes two integers and touches no memory.
        match unsafe { libc::kill(self.pid() as libc::pid_t, signal) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// No file of it may be larger than this from now on (`RLIMIT_FSIZE`): its writes fail as they do on a full disk.
    pub(crate) fn limit_files(&self, bytes: u64) -> io::Result<()> {
        let pid = self.pid() as libc::pid_t;
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the pid is our child's, which is not waited for yet; one limit is written, the other is read.
        let done = unsafe {
            libc::prlimit(pid, libc::RLIMIT_FSIZE, std::ptr::null(), &mut limit) == 0 && {
                // The hard limit stays: to raise it again would need privileges.
                limit.rlim_cur = bytes.min(limit.rlim_max);
                libc::prlimit(pid, libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) == 0
            }
        };
        if done {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Ends it as `kill -9` does and waits until it is gone; a stopped process (SIGSTOP) as well.
    pub(crate) fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It can only fail if the child is gone already.
        let _ = self.kill();
    }
}

fn die_with_parent(command: &mut Command) {
    let parent = std::process::id() as libc::pid_t;
    let ask = move || {
        // SAFETY: prctl with these arguments and getppid only take and give integers; both may be called between
        // fork and exec.
        let (asked, parent_now) = unsafe {
            (
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
                libc::getppid(),
            )
        };
        if asked != 0 {
            return Err(io::Error::last_os_error());
        }
        // If we died between the fork and the prctl, no signal will come: do not even begin.
        if parent_now != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: `ask` allocates nothing and takes no lock.
    unsafe { command.pre_exec(ask) };
}

/// Starts a program that the kernel kills when this process is gone, however it went.
///
/// # Errors
///
/// If the system does not start it.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    die_with_parent(&mut command);
    spawner().spawn(command)
}

/// The thread that makes all children.
struct Spawner {
    orders: Mutex<Sender<Order>>,
}

struct Order {
    command: Command,
    answer: SyncSender<io::Result<Child>>,
}

impl Spawner {
    fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, answered) = sync_channel(1);
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(Order { command, answer })
            .map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

fn spawner() -> &'static Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (orders, incoming) = channel::<Order>();
        // It ends with the process: the sender is never dropped.
        thread::spawn(move || {
            for mut order in incoming {
                let _ = order.answer.send(order.command.spawn());
            }
        });
        Spawner {
            orders: Mutex::new(orders),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Process {
        let mut command = Command::new("sleep");
        command.arg("60");
        Process::spawn(command).unwrap()
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut child = thread::spawn(sleeper).join().unwrap();
        let until = Instant::now() + Duration::from_millis(100);
        assert_eq!(child.wait_until(until).unwrap(), None);
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = sleeper();
        let pid = child.pid();
        drop(child);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_signal_to_a_child_that_has_ended_goes_nowhere() {
        let mut child = sleeper();
        child.kill().unwrap();
        child.signal(libc::SIGTERM).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let error = Process::spawn(Command::new("no-such-program-anywhere")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
