//! Memory account of compiled engines, shared by all their plans, lanes and threads.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// An idle engine keeps workspaces of at most its memory limit divided by this.
const KEPT: u64 = 16;

/// Memory of one or several engines, up to a limit.
///
/// Permanent data is reserved at compilation. A workspace is lent for one sweep. Idle workspaces are freed if another
/// one needs their memory. If that is not enough, a thread waits until a workspace is returned. An engine that does not
/// fit beside those already compiled is refused, as with a smaller limit.
pub(crate) struct Account {
    limit: u64,
    balance: Mutex<Balance>,
    returned: Condvar,
    n_pools: AtomicUsize,
}

#[derive(Default)]
struct Balance {
    /// Bytes of permanent data.
    reserved: u64,
    /// Bytes that must stay free for workspaces: the largest of the engines' smallest workspaces.
    needed: u64,
    /// Bytes of all workspaces, lent or idle.
    workspaces: u64,
    n_lent: usize,
    /// Workspaces that are not in use, in the order of their return.
    idle: Vec<Idle>,
}

struct Idle {
    pool: usize,
    bytes: u64,
    workspace: Box<dyn Any + Send>,
}

impl Account {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let (balance, returned) = (Mutex::default(), Condvar::new());
        Arc::new(Self { limit, balance, returned, n_pools: AtomicUsize::new(0) })
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether `fixed` bytes of permanent data and `lent` bytes of workspaces fit into the rest of the limit.
    pub(crate) fn fits(&self, fixed: u64, lent: u64) -> bool {
        let balance = self.balance();
        let workspaces = lent.max(balance.needed);
        balance.reserved.saturating_add(fixed).saturating_add(workspaces) <= self.limit
    }

    /// Reserves `fixed` bytes permanently, for an engine whose smallest workspace takes `lent` bytes.
    pub(crate) fn reserve(&self, fixed: u64, lent: u64) {
        let mut balance = self.balance();
        balance.reserved = balance.reserved.saturating_add(fixed);
        balance.needed = balance.needed.max(lent);
    }

    /// The limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are reserved permanently.
    pub(crate) fn reserved(&self) -> u64 {
        self.balance().reserved
    }

    /// Bytes that are in use or reserved: permanent data, and workspaces, lent or idle.
    pub(crate) fn held(&self) -> u64 {
        let balance = self.balance();
        balance.reserved.saturating_add(balance.workspaces)
    }

    /// Bytes that are not reserved permanently.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.reserved())
    }

    /// Reserves one part in `share` of the rest, for an engine that is compiled when a row first needs it. Whether that
    /// engine fits then depends on this part alone, and not on the order of the rows.
    pub(crate) fn set_aside(&self, share: u64) -> Arc<Self> {
        let bytes = self.left().saturating_sub(self.balance().needed) / share;
        self.reserve(bytes, 0);
        Self::new(bytes)
    }

    /// Creates a pool of workspaces of this size in bytes.
    pub(crate) fn pool<W>(self: &Arc<Self>, bytes: u64) -> Pool<W> {
        let pool = self.n_pools.fetch_add(1, Ordering::Relaxed);
        Pool { account: self.clone(), pool, bytes, workspaces: PhantomData }
    }

    /// Frees idle workspaces, oldest first, until idle engines hold their share or less.
    pub(crate) fn rest(&self) {
        let mut balance = self.balance();
        let kept = self.limit / KEPT;
        while balance.n_lent == 0 && balance.workspaces > kept && balance.drop_idle() {}
    }
}

impl Balance {
    /// Frees the workspace that has been idle longest. Returns `false` if there is none.
    fn drop_idle(&mut self) -> bool {
        if self.idle.is_empty() {
            return false;
        }
        let idle = self.idle.remove(0);
        self.workspaces -= idle.bytes;
        true
    }
}

/// A pool of workspaces of one type.
pub(crate) struct Pool<W> {
    account: Arc<Account>,
    pool: usize,
    bytes: u64,
    workspaces: PhantomData<fn() -> W>,
}

impl<W: Send + 'static> Pool<W> {
    /// Lends a workspace to `run`, and creates one if none of this type is idle.
    ///
    /// `run` must not borrow another workspace of this account: it might wait for itself.
    pub(crate) fn with<T>(&self, create: impl FnOnce() -> W, run: impl FnOnce(&mut W) -> T) -> T {
        let mut workspace = self.idle().unwrap_or_else(|| Box::new(create()));
        let result = run(&mut workspace);
        let mut balance = self.account.balance();
        balance.n_lent -= 1;
        balance.idle.push(Idle { pool: self.pool, bytes: self.bytes, workspace });
        drop(balance);
        self.account.returned.notify_all();
        result
    }

    /// Returns an idle workspace, or `None` once there is memory for a new one.
    fn idle(&self) -> Option<Box<W>> {
        let mut balance = self.account.balance();
        let room =
            |balance: &Balance| balance.reserved + balance.workspaces + self.bytes <= self.account.limit;
        loop {
            if let Some(place) = balance.idle.iter().rposition(|idle| idle.pool == self.pool) {
                balance.n_lent += 1;
                let idle = balance.idle.remove(place);
                return Some(idle.workspace.downcast().expect("workspaces come back to their own pool"));
            }
            while !room(&balance) && balance.drop_idle() {}
            // One workspace always fits: compilation refuses engines whose smallest workspace does not.
            if room(&balance) || balance.n_lent == 0 {
                balance.n_lent += 1;
                balance.workspaces += self.bytes;
                return None;
            }
            balance = self.account.returned.wait(balance).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_of_all_pools_and_threads_stay_within_the_limit() {
        let account = Account::new(100);
        account.reserve(20, 0);
        let (small, large) = (account.pool::<[u8; 1]>(30), account.pool::<[u8; 2]>(70));
        let [held, most] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let hold = |bytes: usize| {
            most.fetch_max(held.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
            std::thread::yield_now();
            held.fetch_sub(bytes, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (small, large, hold) = (&small, &large, &hold);
                scope.spawn(move || {
                    for turn in 0..200 {
                        match (thread + turn) % 3 {
                            0 => large.with(|| [0; 2], |_| hold(70)),
                            _ => small.with(|| [0; 1], |_| hold(30)),
                        }
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 80, "{most:?} of 80 were in use at once");
        assert!(account.balance().workspaces <= 80);
    }

    #[test]
    fn workspaces_are_used_again_until_others_need_their_room() {
        let account = Account::new(100);
        let (small, large) = (account.pool::<u32>(40), account.pool::<u64>(70));
        small.with(|| 1, |workspace| *workspace += 1);
        small.with(|| 1, |workspace| assert_eq!(*workspace, 2, "the same one again"));
        large.with(|| 5, |_| ());
        small.with(|| 1, |workspace| assert_eq!(*workspace, 1, "a new one"));
    }

    #[test]
    fn an_engine_leaves_room_for_the_workspaces_of_those_before_it() {
        let account = Account::new(100);
        account.reserve(10, 60);
        assert!(account.fits(30, 20) && account.fits(20, 70));
        assert!(!account.fits(31, 20) && !account.fits(20, 71));
        let aside = account.set_aside(3);
        assert_eq!((aside.limit(), account.left()), (10, 80));
        assert!(account.fits(20, 0) && !account.fits(21, 0));
    }

    #[test]
    fn an_engine_at_rest_holds_little() {
        let account = Account::new(160);
        let pool = account.pool::<u32>(8);
        pool.with(|| 1, |_| ());
        account.rest();
        assert_eq!(account.balance().workspaces, 8);
        assert_eq!(account.held(), 8);
        account.pool::<u64>(60).with(|| 1, |_| ());
        account.rest();
        assert_eq!(account.balance().workspaces, 0);
    }
}
