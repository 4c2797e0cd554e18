//! A host that starts the server named by its arguments and then does nothing, for a test that kills it.

use std::process::ExitCode;
use std::time::Duration;

use tools::session::{Limits, Session};
use tools::stdio::{take_role, Guard, Launch};

fn main() -> ExitCode {
    if let Some(end) = take_role() {
        return end;
    }
    let mut arguments = std::env::args().skip(1);
    let launch = Launch {
        command: arguments.next().unwrap_or_default(),
        args: arguments.collect(),
        env: Default::default(),
        path: "/usr/bin:/bin".into(),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let guard = Guard::of_this_program().expect("this program");
        let session = Session::start(&launch, &guard, Limits::default())
            .await
            .expect("a server");
        tokio::time::sleep(Duration::from_secs(600)).await;
        session.close().await;
    });
    ExitCode::SUCCESS
}
