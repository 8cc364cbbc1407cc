"""`python -m torch.distributed.launch`: the former `torch.distributed.run`, which gives scripts the argument `--local-rank`."""

from __future__ import annotations

from .run import get_args_parser, run


def main() -> None:
    """Run the command."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="leave out the argument --local-rank")
    args = parser.parse_args()
    if not args.use_env:
        args.training_script_args.insert(0, "--local-rank=${local_rank}")
    run(args)


if __name__ == "__main__":
    main()
