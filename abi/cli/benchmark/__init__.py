"""``abi benchmark``: the experiments of the validation papers, ours beside theirs."""
