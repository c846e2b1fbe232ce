# SPDX-License-Identifier: BSD-3-Clause
# bash's completions, made of what the programs say of themselves.
COMPLETED := mrrun fabricctl simfab
COMPLETIONS += $(COMPLETED:%=$(BUILD)/share/bash-completion/%)
all: $(COMPLETED:%=$(BUILD)/share/bash-completion/%)
$(COMPLETED:%=$(BUILD)/share/bash-completion/%): $(BUILD)/share/bash-completion/%: $(BUILD)/bin/% packaging/completion
	$(call say,BASH,$@)
	$(Q)mkdir -p $(@D)
	$(Q)packaging/completion $< >$@
