# SPDX-License-Identifier: BSD-3-Clause
"""ARCHITECTURE.md lies beside docs/, where readers of the source tree look first. The site has the page, too, and site.css."""
import os

from mkdocs.structure.files import File

PAGE, STYLE = 'ARCHITECTURE.md', 'site.css'


def on_files(files, config):
    """Adds the page and the style at the root of the site."""
    root = os.path.dirname(config['docs_dir'])
    files.append(File(PAGE, root, config['site_dir'], config['use_directory_urls']))
    files.append(File(STYLE, os.path.dirname(config['config_file_path']), config['site_dir'], config['use_directory_urls']))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to and from the page lead one folder up in the source tree, not in the site."""
    if page.file.src_path == PAGE:
        return markdown.replace('](docs/', '](')
    return markdown.replace('](../' + PAGE, '](' + PAGE)
