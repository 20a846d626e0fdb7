//! The `mirror` program: arguments in, one library call, an exit code out.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let args = std::env::args_os().collect();
    mirror::cli::main(args, mirror::cli::link::program()).into()
}
