"""Shell completion: scripts made from the parser itself, so that they cannot disagree with it."""

from __future__ import annotations

import argparse

from ..catalog import ENTRIES
from ..domains import NAMED
from ..emit import TARGETS


def script(shell: str) -> str:
    """The script of a shell; its first line says how to use it."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](words())


def words() -> dict[str, list[str]]:
    """For each command, what may follow it; for "", the commands."""
    from . import build_parser

    parser = build_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    found = {"": [*commands, *parser._option_string_actions, *ENTRIES]}
    for name, command in commands.items():
        choices = [word for a in command._positionals._group_actions for word in a.choices or ()]
        takes_entropy = any(a.metavar in ("ENTROPY", "NAME") for a in command._positionals._group_actions)
        found[name] = [*command._option_string_actions, *choices, *(ENTRIES if takes_entropy else ())]
    return found


def values() -> dict[str, list[str]]:
    """What may follow an option; an empty list stands for a file."""
    from . import FORMATS

    return {"--target": list(TARGETS), "--format": list(FORMATS), "--domain": list(NAMED), "-o": [], "--output": []}


def bash(words: dict[str, list[str]]) -> str:
    after = "\n".join(
        f'    {option}) COMPREPLY=($(compgen {"-W " + repr(" ".join(each)) if each else "-f"} -- "$word")); return ;;'
        for option, each in values().items()
    )
    cases = "\n".join(f"    {name}) words={' '.join(each)!r} ;;" for name, each in words.items() if name)
    return f"""# fysym in bash: eval "$(fysym completion bash)"
_fysym() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words={" ".join(words[""])!r}
  case ${{COMP_WORDS[COMP_CWORD-1]}} in
{after}
  esac
  if ((COMP_CWORD > 1)); then
    case ${{COMP_WORDS[1]}} in
{cases}
    *) words={" ".join(words["check"])!r} ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _fysym fysym"""


def zsh(words: dict[str, list[str]]) -> str:
    after = "\n".join(
        f"    {option}) {'compadd -- ' + ' '.join(each) if each else '_files'}; return ;;"
        for option, each in values().items()
    )
    cases = "\n".join(f"    {name}) compadd -- {' '.join(each)} ;;" for name, each in words.items() if name)
    return f"""# fysym in zsh: eval "$(fysym completion zsh)", after compinit
_fysym() {{
  case ${{words[CURRENT-1]}} in
{after}
  esac
  if ((CURRENT == 2)); then
    compadd -- {" ".join(words[""])}
  else
    case ${{words[2]}} in
{cases}
    *) compadd -- {" ".join(words["check"])} ;;
    esac
  fi
}}
compdef _fysym fysym"""


def fish(words: dict[str, list[str]]) -> str:
    lines = ["# fysym in fish: fysym completion fish | source", "complete -c fysym -f"]
    lines.append(f"complete -c fysym -n __fish_use_subcommand -a {' '.join(words[''])!r}")
    for name, each in words.items():
        if name:
            lines.append(f"complete -c fysym -n '__fish_seen_subcommand_from {name}' -a {' '.join(each)!r}")
    for option, each in values().items():
        flag = f"-l {option[2:]}" if option.startswith("--") else f"-o {option[1:]}"
        lines.append(f"complete -c fysym {flag} {'-x -a ' + repr(' '.join(each)) if each else '-r -F'}")
    return "\n".join(lines)
