"""The papers' tables and figures, side by side with ours: ``python -m reproduce.<name>``.

| module          | what it draws                                                                          |
|-----------------|----------------------------------------------------------------------------------------|
| dpdpca_figure3  | running time against the number of owners, DPDPCA beside PrivateLocalPCA                |
| dpdpca_figure4  | precision, recall and F1 of an RBF SVM against samples per owner                        |
| dpdpca_figure5  | captured variance against epsilon                                                      |
| secure_sum_figure2 | latency and bytes of the mixing secure sum, one order beside rotated orders         |
| secure_descent  | latency and bytes of gradient descent, secure, in the clear and pooled: figures 3 to 8  |
| synthesis_figures | accuracy on synthetic rows against components, epsilon and owners: figures 2 to 4      |
| descent         | one such fit                                                                           |
| common          | where data come from, how figures and tables are written                               |
| methods         | the ways to components that are compared                                               |

Each writes a PNG and a CSV to ``reproduce/out/``. Public data are read from the folder that
``ATOLL_PUBLIC_DATA`` names, or from ``shared/data`` beside the repository; a panel whose data are not
there is left out with a message.
"""
